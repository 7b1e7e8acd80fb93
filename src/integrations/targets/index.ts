import type { Static } from '@sinclair/typebox'
import type { PublicCtx } from '../../accounts/context'
import { assertOutgoingAllowed } from '../../tenancy/outgoing-hold'
import type { TargetInvocation } from '../invocation'
import { ai } from './ai'
import { email } from './email'
import { http } from './http'
import { lambda } from './lambda'
import type { Referable, TargetActions } from './target-kind'

/** The kinds of targets, by name. */
export const targets = { lambda, http, email, ai }
export type TargetName = keyof typeof targets
export const targetNames = Object.keys(targets) as TargetName[]

type TargetFields = { [Name in TargetName]: Static<(typeof targets)[Name]['shape']> }
export type Target<Name extends TargetName = TargetName> = { [K in Name]: { kind: K } & TargetFields[K] }[Name]

/** The same kinds, typed by their names: so TypeScript knows that a target fits the kind that it names. */
const actions: { [Name in TargetName]: TargetActions<TargetFields[Name]> } = targets

/** Returns an error for each invalid or missing reference of a target. Paths are relative to the target. */
export const validateTarget = <Name extends TargetName>(referable: Referable, target: Target<Name>) =>
  actions[target.kind].validate(referable, target)

/** Runs a target for a caller and returns its response. @throws Problem, JobError, 409 OUTGOING_HELD */
export async function callTarget<Name extends TargetName>(
  ctx: PublicCtx,
  target: Target<Name>,
  invocation: TargetInvocation,
): Promise<Response> {
  await assertOutgoingAllowed(ctx)
  return actions[target.kind].run(ctx, target, invocation)
}
