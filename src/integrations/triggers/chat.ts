import { t } from 'elysia'
import type { TriggerKind } from './trigger-kind'

const shape = t.Object({})

/** A chat with an AI. */
export const chat: TriggerKind<typeof shape> = { shape }
