//! Everything that needs real parts, in one binary.

mod deploy_files;
mod store;
mod tidy;
