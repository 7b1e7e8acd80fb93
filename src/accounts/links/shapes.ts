import { type Static, t } from 'elysia'
import { SignUp } from '../shapes'

const token = t.String({ minLength: 1, maxLength: 500, description: 'token from the link' })

export const SetUp = t.Composite([SignUp, t.Object({ token })])
export type SetUp = Static<typeof SetUp>

export const LinkSignIn = t.Composite([t.Pick(SignUp, ['authType']), t.Object({ token })])
export type LinkSignIn = Static<typeof LinkSignIn>
