/** Thrown when the program cannot use its configuration or arguments. The message is meant for the operator. */
export class ConfigError extends Error {}
