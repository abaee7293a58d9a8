//! Values of the Shoal language: types, order, rendering, paths and slices, elision.
#![forbid(unsafe_code)]
