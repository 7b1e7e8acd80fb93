/**
 * The cost of a password hash by argon2id (RFC 9106), in KiB and passes: the first choice of OWASP's Password Storage Cheat
 * Sheet. Bun always uses one lane (p = 1). `decoyHash` is the hash, at the same cost, of a random text that nobody has kept.
 * Nothing changes these values but tests, in which each hash would take 30 ms.
 */
export const passwordCost = {
  memoryCost: 19_456,
  timeCost: 2,
  decoyHash:
    '$argon2id$v=19$m=19456,t=2,p=1$aduKF6GQ1XnR6DdZOEHFT94sAlHK3CzpxC17T21umr0$yM25FqoNQ5LGDuGOPGfImkoHuZ1arV4BUEF0HbUxsL8',
}
