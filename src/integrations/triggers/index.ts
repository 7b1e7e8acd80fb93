import type { Static } from '@sinclair/typebox'
import type { FieldError } from '../../core/problem'
import { chat } from './chat'
import { event } from './event'
import { schedule } from './schedule'
import { tool } from './tool'
import type { TriggerValidation } from './trigger-kind'
import { webhook } from './webhook'

/** The kinds of triggers, by name. `webhooks.ts`, `event-subscriber.ts` and `schedules.ts` run the targets. */
export const triggers = { webhook, event, schedule, chat, tool }
export type TriggerName = keyof typeof triggers
export const triggerNames = Object.keys(triggers) as TriggerName[]

type TriggerFields = { [Name in TriggerName]: Static<(typeof triggers)[Name]['shape']> }
export type Trigger<Name extends TriggerName = TriggerName> = { [K in Name]: { kind: K } & TriggerFields[K] }[Name]

/** The same kinds, typed by their names: so TypeScript knows that a trigger fits the kind that it names. */
const validations: { [Name in TriggerName]: TriggerValidation<TriggerFields[Name]> } = triggers

/** Returns the errors of a trigger that its shape cannot express. Paths are relative to the trigger. */
export const validateTrigger = <Name extends TriggerName>(trigger: Trigger<Name>): FieldError[] =>
  validations[trigger.kind].validate?.(trigger) ?? []
