//! The movements in memory (being written).
