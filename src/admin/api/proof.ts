import { observable } from './observable'
import { ApiProblem, ConnectionLost } from './problem'
import type { Proof } from './schema'

/** What proves that the user is present: a code of the second factor, the password, or another sign-in. */
type ProofKind = 'code' | 'currentPassword' | 'signin'

type PendingProof = {
  kind: ProofKind
  /** Sends the request again. @throws ApiProblem when the proof is wrong */
  submit(proof: Proof): Promise<void>
  cancel(): void
}

/** The request that waits for a proof, or undefined. */
export const pendingProof = observable<PendingProof | undefined>(undefined)

/** A request that was not sent, because the user did not prove who they are. */
class ProofDeclined extends Error {
  constructor() {
    super('Not saved: you did not confirm your identity.')
  }
}

/** These leave the dialog open, so that the user tries again. */
const RETRIED_CODES = ['INVALID_CREDENTIALS', 'INVALID_CODE', 'RATE_LIMITED', 'PROOF_REQUIRED']

/**
 * Sends a request that the server may answer only with a proof. Where it asks for one, a dialog asks the user in place,
 * and the request is sent again. @throws ApiProblem, ProofDeclined
 */
export async function sendWithProof<Data>(send: (proof: Proof) => Promise<Data>): Promise<Data> {
  try {
    return await send({})
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.code !== 'PROOF_REQUIRED') throw error
    return askForProof((error.details as { by: ProofKind }).by, send)
  }
}

function askForProof<Data>(kind: ProofKind, send: (proof: Proof) => Promise<Data>): Promise<Data> {
  const { promise, resolve, reject } = Promise.withResolvers<Data>()
  const submit = async (proof: Proof) => {
    try {
      resolve(await send(proof))
    } catch (error) {
      if (error instanceof ConnectionLost) throw error
      if (error instanceof ApiProblem && RETRIED_CODES.includes(error.code)) throw error
      reject(error)
    }
    pendingProof.set(undefined)
  }
  const cancel = () => {
    pendingProof.set(undefined)
    reject(new ProofDeclined())
  }
  // A request that waits already would never be answered.
  pendingProof.get()?.cancel()
  pendingProof.set({ kind, submit, cancel })
  return promise
}
