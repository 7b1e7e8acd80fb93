import { t } from 'elysia'
import type { TriggerKind } from './trigger-kind'

const shape = t.Object({})

/** A request to `/api/webhooks/:integrationId`. */
export const webhook: TriggerKind<typeof shape> = { shape }
