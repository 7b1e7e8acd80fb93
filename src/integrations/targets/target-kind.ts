import type { Static, TObject } from '@sinclair/typebox'
import type { PublicCtx } from '../../accounts/context'
import type { ScopeArea } from '../../accounts/permissions'
import type { KindName } from '../../connections/kinds/index'
import type { FieldError } from '../../core/problem'
import type { TargetInvocation } from '../invocation'

/** What targets may refer to: what is stored, or what a push will make. */
export type Referable = {
  findConnectionKind(id: string): Promise<KindName | undefined>
  hasLambda(id: string): Promise<boolean>
  /** Returns which of these ids are integrations with the trigger `tool`. */
  findToolIds(ids: string[]): Promise<string[]>
  findBlueprintKeys(keys: string[]): Promise<string[]>
}

/** A kind of target: the shape of its fields besides `kind`, and what is done with them. */
export type TargetKind<Shape extends TObject> = { shape: Shape } & TargetActions<Static<Shape>>

/** How targets with these fields are checked and run. */
export type TargetActions<Fields> = {
  /** The area that the scopes of an API token must allow to write when the target runs as a tool. */
  area: ScopeArea
  /** Returns an error for each invalid or missing reference. Paths are relative to the target. */
  validate(referable: Referable, target: Fields): Promise<FieldError[]>
  /**
   * Runs the target for a caller (`ctx.actor`; anonymous without one). A response with a status of 400 or more has
   * failed.
   * @throws Problem, and a permanent JobError when a retry cannot help
   */
  run(ctx: PublicCtx, target: Fields, invocation: TargetInvocation): Promise<Response>
  /** The maximum number of attempts of a background run; default: attempts for three days. */
  maxAttempts?: number
  /** Whether callers are answered at once, and the target runs in the background. */
  isBackground?: boolean
}

/** Returns an error when a target names a connection that does not exist or is of another kind. */
export async function validateSource(
  { findConnectionKind }: Pick<Referable, 'findConnectionKind'>,
  sourceId: string | undefined,
  kind: KindName,
): Promise<FieldError[]> {
  if (sourceId === undefined || (await findConnectionKind(sourceId)) === kind) return []
  return [{ path: '/sourceId', message: `There is no integration source of the kind ${kind} with this id.` }]
}
