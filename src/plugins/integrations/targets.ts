import type { Static } from '@sinclair/typebox'
import { ai } from './targets/ai'
import { email } from './targets/email'
import { http } from './targets/http'
import { lambda } from './targets/lambda'

/** What an integration can do. */
export const targets = { lambda, http, email, ai }
export type TargetName = keyof typeof targets
export const targetNames = Object.keys(targets) as TargetName[]

export type Target<Name extends TargetName = TargetName> = {
  [K in Name]: { kind: K } & Static<(typeof targets)[K]['shape']>
}[Name]
