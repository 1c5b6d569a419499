//! The configuration file: layers, validation, secrets, enrolment, diff.
