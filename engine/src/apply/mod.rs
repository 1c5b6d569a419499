//! The target side of a flow: whole transactions into one fenced target transaction.
