//! Everything that needs real parts, in one binary.

mod smoke;
