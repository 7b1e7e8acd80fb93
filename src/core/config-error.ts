/** The start was given something that it cannot use; the message is for the person who gave it. */
export class ConfigError extends Error {}
