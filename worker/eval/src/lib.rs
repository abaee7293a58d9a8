//! Evaluator of the Shoal language: compile, run, methods, builtins, effects, and the Host trait.
#![forbid(unsafe_code)]
