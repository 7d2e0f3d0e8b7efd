"""What each client does in a run; a module for each kind of work.

The code is what a good user of each client would write. These modules import nothing
at their top that a client would not import as well, for one row measures imports.
"""
