import { ai } from './ai'
import { email } from './email'
import { http } from './http'
import { lambda } from './lambda'
import type { FindName, Target, TargetKind, TargetName } from './target-kind'

/** All kinds of targets, by the names that the API uses. */
export const targets: { [Name in TargetName]: TargetKind<Name> } = { lambda, http, email, ai }

/** Returns what a target does, as the second half of a sentence. */
export const describeTarget = (target: Target, findName: FindName): string =>
  (targets[target.kind] as TargetKind).describe(target as never, findName)
