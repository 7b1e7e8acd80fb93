import { Button, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { FieldForm } from '../fields/field-form'
import { CodeBlock } from '../ui/code-block'
import { confirmAction } from '../ui/confirmation'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { APPLE, connectionFields, KNOWN_PROVIDERS, toProvider } from './provider-fields'
import { authConfigurationQuery, changeProviders, type Provider, refreshAuthConfiguration } from './settings-queries'

const route = getRouteApi('/frame/settings/sign-in/$provider')
const FORM_ID = 'provider'

const redirectAddress = (name: string) => `${location.origin}/api/auth/${name}/callback`

/** One provider: what it has to know about this server, and what this server knows about it. */
export function ProviderPanel() {
  const { provider: name } = route.useParams()
  const navigate = useNavigate()
  const { data, error } = useQuery(authConfigurationQuery)
  const close = () => navigate({ to: '/settings/sign-in' })
  const provider = data?.providers?.[name]
  const remove = useMutation({
    mutationFn: () => changeProviders(({ [name]: _, ...others }) => others),
    onSuccess: async () => {
      await refreshAuthConfiguration()
      showNotice(`${name} was removed.`)
      return close()
    },
  })
  const confirmAndRemove = async () => {
    const text = 'Users who sign in only by this provider then need a password, which they can choose by mail.'
    if (await confirmAction({ title: `Remove the provider ${name}?`, text, action: 'Remove provider' })) remove.mutate()
  }
  return (
    <SidePanel
      title={name}
      onClose={close}
      footer={
        provider && (
          <>
            <SaveButton form={FORM_ID} />
            <Button variant="default" color="red" ml="auto" onClick={confirmAndRemove} loading={remove.isPending}>
              Remove
            </Button>
          </>
        )
      }
    >
      {(error ?? remove.error) && <ProblemMessage error={error ?? remove.error} />}
      {data && !provider && <Text size="sm">There is no such provider.</Text>}
      {provider && <ProviderForm key={name} name={name} provider={provider} />}
    </SidePanel>
  )
}

function ProviderForm({ name, provider }: { name: string; provider: Provider }) {
  const isOpenId = provider.kind === 'oidc' || !KNOWN_PROVIDERS.includes(name)
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
        fields={connectionFields({ isNew: false, isOpenId: () => isOpenId, isApple: () => name === APPLE })}
        before={provider}
        draftKey={`settings-provider-${name}`}
        save={(_changes, values) =>
          changeProviders((providers) => ({
            ...providers,
            [name]: { ...providers[name], ...toProvider(values, { isOpenId, isApple: name === APPLE }) },
          }))
        }
        onSaved={async () => {
          await refreshAuthConfiguration()
          showNotice('Saved.')
        }}
      />
    </Stack>
  )
}
