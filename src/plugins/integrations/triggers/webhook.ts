import { t } from 'elysia'
import { trigger } from './trigger'

/** A request to `/api/webhooks/:integrationId`. */
export const webhook = trigger({ shape: t.Object({}) })
