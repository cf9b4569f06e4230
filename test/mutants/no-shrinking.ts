import fc from "fast-check";

// A failed property has killed its mutant: the smallest counterexample is of no interest.
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
