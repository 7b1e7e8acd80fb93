import { afterAll } from 'bun:test'
import { passwordCost } from '../src/accounts/password-cost'

const STANDARD_COST = { ...passwordCost }
const LOW_COST = { memoryCost: 128, timeCost: 1 }

/** Makes password hashes of this process a hundred times cheaper than those of a server. */
export async function lowerPasswordCost() {
  const decoyHash = await Bun.password.hash(crypto.randomUUID(), { algorithm: 'argon2id', ...LOW_COST })
  Object.assign(passwordCost, LOW_COST, { decoyHash })
}

/** Gives password hashes the cost that they have on a server, until the end of this file. */
export function useStandardPasswordCost() {
  Object.assign(passwordCost, STANDARD_COST)
  afterAll(lowerPasswordCost)
}
