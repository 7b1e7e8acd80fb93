import { Button, CloseButton, Group } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { sendWithProof } from '../api/proof'
import type { Identity } from '../api/schema'
import { providersQuery, toProviderName } from '../sign-in/provider-buttons'
import { confirmAction } from '../ui/confirmation'
import { showProblem } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { identitiesQuery, refetchAccount } from './account-queries'

const RETURN_PATH = '/admin/account'

async function linkProvider(provider: string) {
  const body = { provider, returnUrl: RETURN_PATH }
  const { url } = await sendWithProof((proof) =>
    fetchData(api.POST('/api/me/identities', { body: { ...body, ...proof } })),
  )
  location.assign(url)
}

async function unlinkProvider({ _id: id, provider }: Identity) {
  const name = toProviderName(provider)
  const text = `You can no longer sign in with ${name}.`
  if (!(await confirmAction({ title: `Unlink ${name}?`, text, action: 'Unlink' }))) return
  await fetchData(api.DELETE('/api/me/identities/{id}', { params: { path: { id } } }))
  await refetchAccount()
}

/** The accounts at providers by which the user signs in. Without any, there is nothing to show. */
export function IdentitySection() {
  const { data: providers = [] } = useQuery(providersQuery)
  const { data: identities = [] } = useQuery(identitiesQuery)
  const link = useMutation({ mutationFn: linkProvider })
  if (!providers.length && !identities.length) return null
  const others = providers.filter((name) => !identities.some(({ provider }) => provider === name))
  return (
    <PanelSection title="Sign-in providers" order={2}>
      <RowList
        label="Sign-in providers"
        rows={identities}
        rowKey={({ _id }) => _id}
        empty="No provider is linked yet."
        render={(identity) => ({
          title: toProviderName(identity.provider),
          text: (
            <>
              {identity.email && `${identity.email} · `}linked <RelativeTime time={identity.created} />
            </>
          ),
          actions: (
            <CloseButton
              aria-label={`Unlink ${toProviderName(identity.provider)}`}
              onClick={() => unlinkProvider(identity).catch(showProblem)}
            />
          ),
        })}
      />
      {link.error && <ProblemMessage m={0} error={link.error} />}
      <Group gap="xs" mt="sm">
        {others.map((provider) => (
          <Button key={provider} variant="default" loading={link.isPending} onClick={() => link.mutate(provider)}>
            Link {toProviderName(provider)}
          </Button>
        ))}
      </Group>
    </PanelSection>
  )
}
