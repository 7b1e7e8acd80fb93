import { Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { CodeBlock } from '../ui/code-block'
import { confirmAction } from '../ui/confirmation'
import { Details } from '../ui/details'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SidePanel } from '../ui/side-panel'
import { changeWebsites, type HostRow, useHostRows } from './host-rows'
import { HostState } from './host-state'

const route = getRouteApi('/frame/settings/hosts/$host')

/** One host: its state, and what is missing until it leads to the tenant. */
export function HostPanel() {
  const { host } = route.useParams()
  const navigate = useNavigate()
  const { rows, error } = useHostRows()
  const close = () => navigate({ to: '/settings/hosts' })
  const row = rows?.find((each) => each.host === host)
  const check = useMutation({ mutationFn: () => changeWebsites((websites) => websites) })
  const remove = useMutation({
    mutationFn: () => changeWebsites((websites) => websites.filter((address) => !row?.websites.includes(address))),
    onSuccess: () => {
      showNotice(`${host} was removed.`)
      return close()
    },
  })
  const confirmAndRemove = async () => {
    const text = 'Its pages can no longer use the API from a browser, and links in mails no longer lead there.'
    if (await confirmAction({ title: `Remove ${host}?`, text, action: 'Remove host' })) remove.mutate()
  }
  const failure = error ?? check.error ?? remove.error
  return (
    <SidePanel
      title={host}
      onClose={close}
      footer={
        row?.websites.length ? (
          <Button variant="default" color="red" onClick={confirmAndRemove} loading={remove.isPending}>
            Remove
          </Button>
        ) : undefined
      }
    >
      {failure && <ProblemMessage error={failure} />}
      {rows && !row && <Text size="sm">This tenant has no such host.</Text>}
      {row && <HostDetails row={row} onCheck={() => check.mutate()} isChecking={check.isPending} />}
    </SidePanel>
  )
}

type HostDetailsProps = { row: HostRow; onCheck: () => void; isChecking: boolean }

function HostDetails({ row, onCheck, isChecking }: HostDetailsProps) {
  const { state, isGiven, websites, message, record } = row
  return (
    <Stack gap="md">
      <Details
        items={[
          ['State', <HostState key="state" state={state} />],
          ['Set by', isGiven ? 'The operator of this installation' : 'This tenant, as a website'],
          ['Websites', websites.join(', ')],
        ]}
      />
      {state === 'local' && (
        <Text size="sm">
          Pages on this computer may read answers to requests with a token. Requests to this host do not reach the
          tenant.
        </Text>
      )}
      {record ? (
        <>
          <Text size="sm">
            Create this record at the provider of your DNS. It proves that the host is yours, and has to stay: it is
            checked daily.
          </Text>
          <CodeBlock label="Type" code={record.type} />
          <CodeBlock label="Name" code={record.name} />
          <CodeBlock label="Value" code={record.value} />
        </>
      ) : (
        message && <Text size="sm">{message}</Text>
      )}
      {state === 'unproven' && (
        <div>
          <Button variant="default" onClick={onCheck} loading={isChecking}>
            Check again
          </Button>
        </div>
      )}
    </Stack>
  )
}
