import { Busy } from '../storage/errors'

const AT_ONCE = 2 // each takes a core and 64 MB for 100 ms, beside the event loop
const WAITING = 200

let running = 0
const queue: (() => void)[] = []

/** argon2id, with a salt of its own. @throws 503 when too many wait. */
export const hashPassword = (password: string) => inTurn(() => Bun.password.hash(password, 'argon2id'))

/** Takes as long for a user who doesn't exist (no hash) as for one who does. */
export async function verifyPassword(password: string, hash: string | null | undefined): Promise<boolean> {
  decoy ??= hashPassword(crypto.randomUUID())
  const known = hash ?? (await decoy)
  const fits = await inTurn(() => Bun.password.verify(password, known))
  return fits && !!hash
}
let decoy: Promise<string> | undefined

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (queue.length >= WAITING) throw new Busy()
  if (running >= AT_ONCE) await new Promise<void>((resolve) => queue.push(resolve))
  else running++
  try {
    return await work()
  } finally {
    // The place is handed on, or else somebody who comes just now would overtake.
    const next = queue.shift()
    if (next) next()
    else running--
  }
}
