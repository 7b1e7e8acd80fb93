import { t } from 'elysia'
import { trigger } from './trigger'

/** Somebody who talks to an AI. */
export const chat = trigger({ shape: t.Object({}) })
