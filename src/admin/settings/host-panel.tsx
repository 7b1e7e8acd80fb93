import { Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { FieldForm, type FormField } from '../fields/field-form'
import { CodeBlock } from '../ui/code-block'
import { confirmAction } from '../ui/confirmation'
import { Details } from '../ui/details'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { type HostRow, saveWebsites, useHostRows } from './host-rows'
import { HostState } from './hosts'

const route = getRouteApi('/frame/settings/hosts/$host')
const FORM_ID = 'website'

const fields: FormField[] = [
  {
    ...{ key: 'websiteUrls', type: 'url', required: true, title: 'Address of the website' },
    description: 'Its pages may use the API from a browser, and links in mails lead to the first website.',
  },
]

/** A form for another website of the tenant. */
export function NewHostPanel() {
  const navigate = useNavigate()
  const { websites, claims } = useHostRows()
  const close = () => navigate({ to: '/settings/hosts' })
  const openHost = (address: string) => {
    const host = URL.parse(address)?.hostname
    if (host) void navigate({ to: '/settings/hosts/$host', params: { host }, replace: true })
  }
  return (
    <SidePanel title="Add a website" onClose={close} footer={<SaveButton form={FORM_ID} label="Add" />}>
      <FieldForm
        id={FORM_ID}
        fields={fields}
        draftKey="settings-website"
        save={async (_changes, { websiteUrls: address }) => {
          await saveWebsites([...new Set([...websites, String(address ?? '')])])
          return String(address)
        }}
        onSaved={openHost}
      />
      <Text size="sm" c="dimmed" mt="md">
        {claims === 'dns' && 'You prove that the host is yours by a record in the DNS, which the next step shows.'}
        {claims === 'open' && 'The first tenant of this installation that names a free host gets it.'}
        {claims === 'off' && 'The operator of this installation decides which hosts lead to this tenant.'}
      </Text>
    </SidePanel>
  )
}

/** What leads a host to the tenant, and what is missing for it. */
export function HostPanel() {
  const { host } = route.useParams()
  const navigate = useNavigate()
  const { rows, websites, error } = useHostRows()
  const close = () => navigate({ to: '/settings/hosts' })
  const row = rows?.find((each) => each.host === host)
  const check = useMutation({ mutationFn: () => saveWebsites(websites) })
  const remove = useMutation({
    mutationFn: () => saveWebsites(websites.filter((address) => !row?.websites.includes(address))),
    onSuccess: () => {
      showNotice(`${host} was removed.`)
      return close()
    },
  })
  const askAndRemove = async () => {
    const text = 'Its pages cannot use the API from a browser any more, and mails do not lead there.'
    if (await confirmAction({ title: `Remove ${host}?`, text, action: 'Remove' })) remove.mutate()
  }
  const failure = error ?? check.error ?? remove.error
  return (
    <SidePanel
      title={host}
      onClose={close}
      footer={
        row?.websites.length ? (
          <Button variant="default" color="red" onClick={askAndRemove} loading={remove.isPending}>
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
            looked up daily.
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
