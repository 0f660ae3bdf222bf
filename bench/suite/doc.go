// Package suite measures a gateway against the numbers that the project promises, each beside its
// reference and in the same run.
//
// The gateway, the reference proxy and the upstream are processes of their own. What is compared
// runs on the same core in turn (A B A B …), load and upstream on the other cores; CPU time comes
// from the kernel's clock of each process. Ratios of such pairs hold on a busy machine too;
// absolute numbers do not.
package suite
