import type { Static } from '@sinclair/typebox'
import { ai } from './ai'
import { email } from './email'
import { http } from './http'
import { lambda } from './lambda'

/** The kinds of targets, by name. */
export const targets = { lambda, http, email, ai }
export type TargetName = keyof typeof targets
export const targetNames = Object.keys(targets) as TargetName[]

export type Target<Name extends TargetName = TargetName> = {
  [K in Name]: { kind: K } & Static<(typeof targets)[K]['shape']>
}[Name]
