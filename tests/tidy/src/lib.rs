//! Checks of the repository: direction of dependencies, the unsafe fence, file sizes, fuzz targets.
#![forbid(unsafe_code)]
