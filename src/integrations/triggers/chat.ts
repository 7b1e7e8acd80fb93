import { t } from 'elysia'
import type { TriggerKind } from './trigger-kind'

const shape = t.Object({})

/** Somebody who talks to an AI. */
export const chat: TriggerKind<typeof shape> = { shape }
