import type { FormField, FormValues } from '../fields/field-form'
import { SecretInput } from '../fields/password'

/** The providers that the server knows by name. */
export const KNOWN_PROVIDERS = ['google', 'microsoft', 'github', 'gitlab', 'linkedin', 'facebook', 'discord', 'x']
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

/** The fields of what connects to a provider. */
export const connectionFields = (isNew: boolean, isOpenId: (values: FormValues) => boolean): FormField[] => [
  {
    ...{ key: 'issuer', type: 'url', required: true, title: 'Issuer' },
    description: 'The address of the provider, such as https://id.example.com.',
    isHidden: (values) => !isOpenId(values),
  },
  { key: 'clientId', type: 'string', required: true, title: 'Client id' },
  {
    ...{
      key: 'clientSecret',
      type: 'string',
      required: isNew,
      title: 'Client secret',
      Input: SecretInput,
      isSecret: true,
    },
    description: isNew ? 'It is kept encrypted, and nobody can read it.' : 'Leave it empty to keep the present one.',
  },
]

/** The fields of a new provider. */
export const newProviderFields = [...identityFields, ...connectionFields(true, usesOpenId)]

/** Returns a provider as the server stores it; its errors name its fields. */
export const toProvider = ({ clientId, clientSecret, issuer }: FormValues, isOpenId: boolean) => ({
  clientId: clientId ?? '',
  ...(clientSecret !== undefined && clientSecret !== null && { clientSecret }),
  ...(isOpenId && { kind: 'oidc', issuer: issuer ?? '' }),
})
