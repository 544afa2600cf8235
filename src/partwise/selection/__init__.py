"""How many parts, and do they come again: rank selection and stability."""
