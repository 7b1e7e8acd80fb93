import type { FormField, FormValues } from '../fields/field-form'
import { SecretInput } from '../fields/password'

/** The providers that the server knows by name. */
export const KNOWN_PROVIDERS = [
  'google',
  'apple',
  'microsoft',
  'github',
  'gitlab',
  'linkedin',
  'facebook',
  'discord',
  'x',
]
/** Takes a signed token in place of a secret, so it has to know which key signs. */
export const APPLE = 'apple'
/** The choice of a provider that is not known by name. */
const OPENID_CONNECT = 'OpenID Connect'

/** Returns whether the form for a new provider is about one that speaks OpenID Connect. */
export const usesOpenId = ({ provider }: FormValues) => provider === OPENID_CONNECT

const identityFields: FormField[] = [
  {
    ...{
      key: 'provider',
      type: 'string',
      required: true,
      title: 'Provider',
      enum: [...KNOWN_PROVIDERS, OPENID_CONNECT],
    },
    default: 'google',
  },
  {
    ...{ key: 'name', type: 'string', required: true, title: 'Name', description: 'In addresses, such as corp.' },
    isHidden: (values) => !usesOpenId(values),
  },
]

type KindOfForm = {
  isNew: boolean
  isOpenId: (values: FormValues) => boolean
  isApple: (values: FormValues) => boolean
}

/** The fields of what connects to a provider. */
export const connectionFields = ({ isNew, isOpenId, isApple }: KindOfForm): FormField[] => [
  {
    ...{ key: 'issuer', type: 'url', required: true, title: 'Issuer' },
    description: 'The address of the provider, such as https://id.example.com.',
    isHidden: (values) => !isOpenId(values),
  },
  { key: 'clientId', type: 'string', required: true, title: 'Client id' },
  { ...{ key: 'teamId', type: 'string', required: true, title: 'Team id' }, isHidden: (values) => !isApple(values) },
  {
    ...{ key: 'keyId', type: 'string', required: true, title: 'Key id' },
    description: 'Of the key whose file (.p8) is the client secret.',
    isHidden: (values) => !isApple(values),
  },
  {
    ...{
      key: 'clientSecret',
      type: 'string',
      required: isNew,
      title: 'Client secret',
      Input: SecretInput,
      isSecret: true,
    },
    description: isNew ? 'Stored encrypted. It cannot be read back.' : 'Leave it empty to keep the present one.',
  },
]

/** The fields of a new provider. */
export const newProviderFields = [
  ...identityFields,
  ...connectionFields({ isNew: true, isOpenId: usesOpenId, isApple: ({ provider }) => provider === APPLE }),
]

/** Returns a provider as the server stores it; its errors name its fields. */
export const toProvider = (
  { clientId, clientSecret, issuer, teamId, keyId }: FormValues,
  { isOpenId, isApple }: { isOpenId: boolean; isApple: boolean },
) => ({
  clientId: clientId ?? '',
  ...(isApple && { teamId: teamId ?? '', keyId: keyId ?? '' }),
  ...(clientSecret !== undefined && clientSecret !== null && { clientSecret }),
  ...(isOpenId && { kind: 'oidc', issuer: issuer ?? '' }),
})
