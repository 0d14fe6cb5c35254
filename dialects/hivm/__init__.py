"""The hivm dialect: exact instructions on pointers, made from the records of `davinci.isa`."""
