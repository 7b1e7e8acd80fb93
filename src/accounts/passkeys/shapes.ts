import { type Static, t } from 'elysia'
import { id, line, textMatching, time } from '../../core/shapes'
import { SignIn } from '../shapes'

const maybe = t.Optional
const BASE64URL = 'Send base64url: letters, digits, - and _.'
const base64url = (maxLength: number) =>
  textMatching('^[\\w-]+$', BASE64URL, { minLength: 1, maxLength, description: 'base64url' })
const kind = t.Literal('public-key')
const lowerCaseWord = textMatching('^[a-z-]+$', 'Write lower-case letters and - only.', { minLength: 1, maxLength: 50 })

export const Passkey = t.Object({
  _id: id,
  name: t.String(),
  host: t.String({ description: 'host that the passkey is valid for' }),
  transports: t.Array(t.String()),
  backedUp: t.Boolean({ description: 'whether it is backed up to more than one device' }),
  created: time,
  lastUsedAt: t.Nullable(time),
})

const Descriptor = t.Object({ id: t.String(), type: t.String(), transports: maybe(t.Array(t.String())) })

/** https://www.w3.org/TR/webauthn-3/#dictdef-publickeycredentialcreationoptionsjson */
export const PasskeyRegistrationOptions = t.Object(
  {
    rp: t.Object({ id: maybe(t.String()), name: t.String() }),
    user: t.Object({ id: t.String(), name: t.String(), displayName: t.String() }),
    challenge: t.String(),
    pubKeyCredParams: t.Array(t.Object({ type: t.String(), alg: t.Number() })),
    timeout: maybe(t.Number()),
    excludeCredentials: maybe(t.Array(Descriptor)),
    authenticatorSelection: maybe(
      t.Object({
        residentKey: maybe(t.String()),
        requireResidentKey: maybe(t.Boolean()),
        userVerification: maybe(t.String()),
      }),
    ),
    attestation: maybe(t.String()),
    extensions: maybe(t.Object({ credProps: maybe(t.Boolean()) })),
  },
  { description: 'The options for `PublicKeyCredential.parseCreationOptionsFromJSON`' },
)

/** https://www.w3.org/TR/webauthn-3/#dictdef-publickeycredentialrequestoptionsjson */
export const PasskeySignInOptions = t.Object(
  {
    challenge: t.String(),
    timeout: maybe(t.Number()),
    rpId: maybe(t.String()),
    allowCredentials: maybe(t.Array(Descriptor)),
    userVerification: maybe(t.String()),
  },
  { description: 'The options for `PublicKeyCredential.parseRequestOptionsFromJSON`' },
)

const credential = { id: base64url(1_400), rawId: base64url(1_400), type: kind, clientExtensionResults: t.Object({}) }
const clientDataJSON = base64url(4_000)

export const NewPasskey = t.Object({
  name: maybe(line(100, 1)),
  credential: t.Object(
    {
      ...credential,
      response: t.Object({
        clientDataJSON,
        attestationObject: base64url(20_000),
        transports: maybe(t.Array(lowerCaseWord, { maxItems: 20 })),
      }),
    },
    { description: 'what navigator.credentials.create returned, as JSON' },
  ),
})
export type NewPasskey = Static<typeof NewPasskey>

export const PasskeyName = t.Object({ name: line(100, 1) })

const challenge = maybe(
  t.String({ maxLength: 200, description: 'challenge of a 401 SECOND_FACTOR_REQUIRED that this sign-in completes' }),
)
export const PasskeySignInStart = t.Object({ challenge })

export const PasskeySignIn = t.Object({
  credential: t.Object(
    {
      ...credential,
      response: t.Object({
        clientDataJSON,
        authenticatorData: base64url(4_000),
        signature: base64url(4_000),
        userHandle: maybe(textMatching('^[\\w-]*$', BASE64URL, { maxLength: 100 })),
      }),
    },
    { description: 'what navigator.credentials.get returned, as JSON' },
  ),
  authType: SignIn.properties.authType,
  workspace: SignIn.properties.workspace,
  challenge,
})
export type PasskeySignIn = Static<typeof PasskeySignIn>
