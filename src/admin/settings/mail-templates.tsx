import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { installationQuery } from '../api/queries'
import type { MailTemplate } from '../api/schema'
import { type Column, DataTable } from '../ui/data-table'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { StateTag } from '../ui/state-tag'
import classes from './list-column.module.css'
import { mailTemplatesQuery } from './settings-queries'

const TITLES: Record<string, string> = {
  verification: 'Confirm an address',
  passwordReset: 'Choose a new password',
  emailSignIn: 'Sign in by e-mail',
  invitation: 'Invitation to a workspace',
  message: 'Message of an integration',
  newDevice: 'Sign-in from a new device',
  passwordRemoved: 'Password was removed',
  emailChanged: 'Address was changed',
}

/** Returns the name of a template in words. */
export const toTemplateTitle = (name: string) => TITLES[name] ?? name

const isOwn = ({ custom }: MailTemplate) => Object.keys(custom).length > 0

const columns: Column<MailTemplate>[] = [
  { key: 'name', label: 'Mail', width: 220, render: ({ name }) => toTemplateTitle(name) },
  {
    ...{ key: 'subject', label: 'Subject', width: 320 },
    render: ({ standard, custom }) => custom.subject ?? standard.subject,
  },
  {
    ...{ key: 'source', label: 'Texts', width: 110 },
    render: (template) => (isOwn(template) ? <StateTag label="Your own" tone="good" /> : <StateTag label="Standard" />),
  },
]

/** The templates of the mails that the server sends for the tenant, and who sends them. */
export function MailTemplates() {
  const { data: templates = [], error } = useQuery(mailTemplatesQuery)
  const { data: installation } = useQuery(installationQuery)
  const { template } = useParams({ strict: false })
  const navigate = useNavigate()
  return (
    <Screen title="Mail" request={{ method: 'GET', path: '/api/mails/templates' }}>
      <div className={classes.column}>
        {installation && (
          <p className={classes.note}>
            {installation.mail.isSent
              ? `The operator's mail server sends it from ${installation.mail.from}.`
              : 'The operator has set no mail server (ATOLL_SMTP_URL): mail stays in the outbox, where you can read it.'}
          </p>
        )}
        {error && <ProblemMessage error={error} />}
        <DataTable
          label="Mails"
          columns={columns}
          count={templates.length}
          rowAt={(index) => templates[index]}
          rowKey={({ name }) => name}
          activeKey={template}
          onOpen={({ name }) => navigate({ to: '/settings/mail/$template', params: { template: name } })}
        />
      </div>
      <Outlet key={template} />
    </Screen>
  )
}
