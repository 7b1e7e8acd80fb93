import type { Static, TObject } from '@sinclair/typebox'
import { eq } from 'drizzle-orm'
import type { PublicCtx } from '../../accounts/context'
import type { KindName } from '../../connections/kinds/index'
import { connections } from '../../connections/tables'
import type { FieldError } from '../../core/problem'
import type { Tx } from '../../storage/port'
import type { TargetInvocation } from '../invocation'

/** Returns which of these ids are integrations with the trigger `tool`. */
export type FindToolIds = (ids: string[]) => Promise<string[]>

/** A kind of target: what is said of one besides its kind, what it refers to, and what it does. */
export type TargetKind<Shape extends TObject> = {
  shape: Shape
  /** What the scopes of an API token have to allow to write for it to be run as a tool. */
  area: string
  /** What it refers to that is not there, or can't be meant. Paths are those in the target. */
  validate(tx: Tx, target: Static<Shape>, findToolIds: FindToolIds): Promise<FieldError[]>
  /**
   * Does it for a caller (`ctx.actor`), or nobody. An answer with an error's status has failed.
   * @throws Problem, and Failure where another attempt can't help
   */
  run(ctx: PublicCtx, target: Static<Shape>, occasion: TargetInvocation): Promise<Response>
  /** How often it is tried where nobody waits for it; else for three days. */
  maxAttempts?: number
  /** Whether callers are answered at once, and it is done after that. */
  isBackground?: boolean
}

/** What is wrong with the connection that a target names, if it names one. */
export async function validateSource(tx: Tx, sourceId: string | undefined, kind: KindName): Promise<FieldError[]> {
  if (sourceId === undefined) return []
  const row = await tx.select({ kind: connections.kind }).from(connections).where(eq(connections._id, sourceId)).get()
  if (row?.kind === kind) return []
  return [{ path: '/sourceId', message: `There is no integration source of the kind ${kind} with this id.` }]
}
