"""RT-Conference: paper 000, section 4. Talk, see, draw, write and play together, on five tags; an application."""
