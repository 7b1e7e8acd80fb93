/**
 * The cost of deriving a key from a passphrase by scrypt, as a power of two: what age takes by default. Nothing changes it
 * but tests, in which each derivation would take a second.
 */
export const passphraseCost = { workFactor: 18 }
