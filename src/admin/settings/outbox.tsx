import { Select } from '@mantine/core'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { api } from '../api/client'
import type { Mail } from '../api/schema'
import type { Column } from '../ui/data-table'
import { Details } from '../ui/details'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { SidePanel } from '../ui/side-panel'
import { StateTag } from '../ui/state-tag'
import { MailFrame } from './mail-preview'
import { toTemplateTitle } from './mail-templates'

const STATES = {
  waiting: ['Waiting', 'neutral'],
  sent: ['Sent', 'good'],
  kept: ['Kept here', 'warning'],
  failed: ['Failed', 'bad'],
} as const
type MailState = keyof typeof STATES
const isState = (state: string | undefined): state is MailState => !!state && Object.hasOwn(STATES, state)

const MailStateTag = ({ state }: { state: string }) =>
  isState(state) ? <StateTag label={STATES[state][0]} tone={STATES[state][1]} /> : <StateTag label={state} />

const columns: Column<Mail>[] = [
  { key: 'to', label: 'To', width: 220, render: ({ to }) => to },
  {
    key: 'subject',
    label: 'Subject',
    width: 320,
    render: ({ subject, template }) => subject ?? toTemplateTitle(template),
  },
  { key: 'state', label: 'State', width: 110, render: ({ state }) => <MailStateTag state={state} /> },
  { key: 'created', label: 'Created', width: 130, render: ({ created }) => <RelativeTime time={created} /> },
]

/** The mails that were sent, that wait, or that are kept because there is no mail server. */
export function Outbox() {
  const navigate = useNavigate()
  const { mail: id } = useParams({ strict: false })
  const { state } = useSearch({ strict: false }) as { state?: string }
  const search = (isState(state) ? { state } : {}) as never
  const list = useListRows(['mails', state ?? ''], (page) =>
    api.GET('/api/mails', { params: { query: { ...page, ...(isState(state) && { state }) } } }),
  )
  const mail = list.rows.find(({ _id }) => _id === id)
  return (
    <Screen
      title="Outbox"
      request={{ method: 'GET', path: '/api/mails', query: isState(state) ? { state } : undefined }}
      actions={
        <Select
          size="xs"
          w={140}
          aria-label="State"
          placeholder="Every state"
          clearable
          data={Object.entries(STATES).map(([value, [label]]) => ({ value, label }))}
          value={isState(state) ? state : null}
          onChange={(next) => navigate({ to: '/settings/outbox', search: { state: next ?? undefined } as never })}
        />
      }
    >
      <ListTable
        label="Mails"
        columns={columns}
        list={list}
        rowKey={({ _id }) => _id}
        activeKey={id}
        onOpen={({ _id }) => navigate({ to: '/settings/outbox/$mail', params: { mail: _id }, search })}
        empty={{ text: state ? 'No mail is in this state.' : 'No mail was sent within the last 30 days.' }}
      />
      {mail && <MailPanel key={mail._id} mail={mail} onClose={() => navigate({ to: '/settings/outbox', search })} />}
    </Screen>
  )
}

const MailPanel = ({ mail, onClose }: { mail: Mail; onClose: () => void }) => (
  <SidePanel title={mail.subject ?? toTemplateTitle(mail.template)} onClose={onClose}>
    <Details
      items={[
        ['To', mail.to],
        ['Mail', toTemplateTitle(mail.template)],
        ['State', <MailStateTag key="state" state={mail.state} />],
        ['Created', <RelativeTime key="created" time={mail.created} />],
        ['Sent', mail.sent && <RelativeTime key="sent" time={mail.sent} />],
        ['Error', mail.error],
      ]}
    />
    {mail.html && <MailFrame html={mail.html} />}
  </SidePanel>
)
