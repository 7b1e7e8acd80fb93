import { Button, CloseButton, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import type { ApiToken } from '../api/schema'
import { ownWorkspacesQuery } from '../people/workspace-queries'
import { CodeBlock } from '../ui/code-block'
import { confirmAction } from '../ui/confirmation'
import { showProblem } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { StateTag } from '../ui/state-tag'
import { apiTokensQuery, refetchAccount } from './account-queries'
import { NewApiTokenForm } from './new-api-token-form'

async function deleteToken({ _id: id, nickname }: ApiToken) {
  const text = 'Programs that use it are refused from then on.'
  if (!(await confirmAction({ title: `Delete the API token ${nickname}?`, text, action: 'Delete token' }))) return
  await fetchData(api.DELETE('/api/me/api-tokens/{id}', { params: { path: { id } } }))
  await refetchAccount()
}

/** The API tokens by which programs act for the user. */
export function ApiTokenSection() {
  const { data: tokens } = useQuery(apiTokensQuery)
  const [isCreating, { open, close }] = useDisclosure()
  const [issued, setIssued] = useState<string>()
  const finish = (token: string) => {
    close()
    setIssued(token)
  }
  return (
    <PanelSection
      title="API tokens"
      order={2}
      action={
        !isCreating && (
          <Button variant="default" onClick={open}>
            Create an API token
          </Button>
        )
      }
    >
      {isCreating && <NewApiTokenForm onIssued={finish} onCancel={close} />}
      {issued && (
        <>
          <Text size="sm" mb="xs">
            Copy the token now. It is shown only once.
          </Text>
          <CodeBlock label="token" code={issued} />
        </>
      )}
      <RowList
        label="API tokens"
        rows={tokens}
        rowKey={({ _id }) => _id}
        empty="Programs sign in with an API token. You have none."
        render={(token) => ({
          title: token.nickname,
          text: <TokenFacts token={token} />,
          actions: (
            <CloseButton
              aria-label={`Delete ${token.nickname}`}
              onClick={() => deleteToken(token).catch(showProblem)}
            />
          ),
        })}
      />
    </PanelSection>
  )
}

function TokenFacts({ token: { tokenPrefix, scopes, expiresAt, lastUsedAt, workspace } }: { token: ApiToken }) {
  const { data: workspaces } = useQuery({ ...ownWorkspacesQuery, enabled: !!workspace })
  const isExpired = !!expiresAt && Date.parse(expiresAt) < Date.now()
  return (
    <>
      <code>{tokenPrefix}…</code> · {scopes.length ? scopes.join(', ') : 'may do whatever you may do'}
      {workspace && ` · only in ${workspaces?.find(({ _id }) => _id === workspace)?.name ?? 'one workspace'}`}
      {' · '}
      {lastUsedAt ? (
        <>
          used <RelativeTime time={lastUsedAt} />
        </>
      ) : (
        'not used yet'
      )}
      {expiresAt && (
        <>
          {' · '}
          {isExpired ? (
            <StateTag label="expired" tone="bad" />
          ) : (
            <>
              expires <RelativeTime time={expiresAt} />
            </>
          )}
        </>
      )}
    </>
  )
}
