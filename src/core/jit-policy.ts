/**
 * Lets code be compiled as usual. A binary compiles later while it starts, because most code of a start runs only once,
 * so each process calls this as soon as it has started.
 */
export const endStartPolicy = () => Bun.unsafe.setJITPolicy(1)
