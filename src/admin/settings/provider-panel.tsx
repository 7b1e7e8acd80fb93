import { Button, PasswordInput, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import type { InputProps } from '../fields/field-kind'
import { CodeBlock } from '../ui/code-block'
import { confirmAction } from '../ui/confirmation'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import {
  authConfigurationQuery,
  changeAuthConfiguration,
  type Provider,
  refreshAuthConfiguration,
} from './settings-queries'

const route = getRouteApi('/frame/settings/sign-in/$provider')
const FORM_ID = 'provider'
const KNOWN_NAMES = ['google', 'github', 'linkedin', 'facebook']
const OWN = 'OpenID Connect'

const SecretInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <PasswordInput
    {...rest}
    autoComplete="off"
    value={typeof value === 'string' ? value : ''}
    onChange={(event) => onChange(event.currentTarget.value || undefined)}
  />
)

const usesOpenId = ({ provider }: FormValues) => provider === OWN

const identityFields: FormField[] = [
  {
    ...{ key: 'provider', type: 'string', required: true, title: 'Provider', enum: [...KNOWN_NAMES, OWN] },
    default: 'google',
  },
  {
    ...{ key: 'name', type: 'string', required: true, title: 'Name', description: 'In addresses, such as corp.' },
    isHidden: (values) => !usesOpenId(values),
  },
]

const connectionFields = (isNew: boolean, isOpenId: (values: FormValues) => boolean): FormField[] => [
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

const newFields = [...identityFields, ...connectionFields(true, usesOpenId)]

const redirectAddress = (name: string) => `${location.origin}/api/auth/${name}/callback`

/** Returns a provider as the server stores it; its errors name its fields. */
const toProvider = ({ clientId, clientSecret, issuer }: FormValues, isOpenId: boolean) => ({
  clientId: clientId ?? '',
  ...(clientSecret !== undefined && clientSecret !== null && { clientSecret }),
  ...(isOpenId && { kind: 'oidc', issuer: issuer ?? '' }),
})

function useProviderPlaces() {
  const navigate = useNavigate()
  const { data, error } = useQuery(authConfigurationQuery)
  const close = () => navigate({ to: '/settings/sign-in' })
  return { providers: data?.providers ?? {}, isReady: !!data, error, close, navigate }
}

/** A form for another provider. */
export function NewProviderPanel() {
  const { providers, close, navigate } = useProviderPlaces()
  return (
    <SidePanel title="Add a provider" onClose={close} footer={<SaveButton form={FORM_ID} label="Add" />}>
      <FieldForm
        id={FORM_ID}
        fields={newFields}
        draftKey="settings-provider"
        save={async (_changes, values) => {
          const isOpenId = usesOpenId(values)
          const name = String((isOpenId ? values.name : values.provider) ?? '')
          await changeAuthConfiguration({ providers: { ...providers, [name]: toProvider(values, isOpenId) } })
          return name
        }}
        onSaved={async (provider) => {
          await refreshAuthConfiguration()
          await navigate({ to: '/settings/sign-in/$provider', params: { provider }, replace: true })
        }}
      />
    </SidePanel>
  )
}

/** One provider: what it has to know about this server, and what this server knows about it. */
export function ProviderPanel() {
  const { provider: name } = route.useParams()
  const { providers, isReady, error, close } = useProviderPlaces()
  const provider = providers[name]
  const remove = useMutation({
    mutationFn: () => {
      const { [name]: _, ...others } = providers
      return changeAuthConfiguration({ providers: others })
    },
    onSuccess: async () => {
      await refreshAuthConfiguration()
      showNotice(`${name} was removed.`)
      return close()
    },
  })
  const askAndRemove = async () => {
    const text = 'Users who sign in only by this provider need a password then, which they get by mail.'
    if (await confirmAction({ title: `Remove the provider ${name}?`, text, action: 'Remove' })) remove.mutate()
  }
  return (
    <SidePanel
      title={name}
      onClose={close}
      footer={
        provider && (
          <>
            <SaveButton form={FORM_ID} />
            <Button variant="light" color="red" ml="auto" onClick={askAndRemove} loading={remove.isPending}>
              Remove
            </Button>
          </>
        )
      }
    >
      {(error ?? remove.error) && <ProblemMessage error={error ?? remove.error} />}
      {isReady && !provider && <Text size="sm">There is no such provider.</Text>}
      {provider && <ProviderForm key={name} name={name} provider={provider} providers={providers} />}
    </SidePanel>
  )
}

type ProviderFormProps = { name: string; provider: Provider; providers: Record<string, Provider> }

function ProviderForm({ name, provider, providers }: ProviderFormProps) {
  const isOpenId = provider.kind === 'oidc' || !KNOWN_NAMES.includes(name)
  return (
    <Stack gap="md">
      <div>
        <Text size="sm" mb={4}>
          Enter this redirect address where you register the app at the provider.
        </Text>
        <CodeBlock label="Redirect address" code={redirectAddress(name)} />
      </div>
      <FieldForm
        id={FORM_ID}
        fields={connectionFields(false, () => isOpenId)}
        before={provider}
        draftKey={`settings-provider-${name}`}
        save={(_changes, values) =>
          changeAuthConfiguration({
            providers: { ...providers, [name]: { ...provider, ...toProvider(values, isOpenId) } },
          })
        }
        onSaved={async () => {
          await refreshAuthConfiguration()
          showNotice('Saved.')
        }}
      />
    </Stack>
  )
}
