import { Button, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { MailTemplate } from '../api/schema'
import { codeInput } from '../fields/code-input'
import { FieldForm, type FormField, type FormValues, useFormValues } from '../fields/field-form'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { MailPreview } from './mail-preview'
import { toTemplateTitle } from './mail-templates'
import { changeConfiguration, mailTemplatesQuery } from './settings-queries'

const route = getRouteApi('/frame/settings/mail/$template')
const FORM_ID = 'mail-template'
const TYPING_PAUSE_MS = 300
const HtmlInput = codeInput('html')

/** Returns a part of the form that shows the mail as it is typed. */
const createPreview = ({ name, placeholders }: MailTemplate) =>
  function Preview() {
    const [parts] = useDebouncedValue(JSON.stringify(toParts(useFormValues())), TYPING_PAUSE_MS)
    return (
      <div>
        <Text size="xs" c="dimmed">
          Placeholders: {placeholders.map((each) => `{{${each}}}`).join(', ')}
        </Text>
        <MailPreview name={name} parts={JSON.parse(parts)} />
      </div>
    )
  }

const toFields = (template: MailTemplate): FormField[] => [
  {
    key: 'subject',
    type: 'string',
    required: false,
    title: 'Subject',
    max: 300,
    description: 'Default: the standard text.',
  },
  { key: 'text', type: 'text', required: false, title: 'Text', description: 'Default: the standard text.' },
  {
    ...{ key: 'html', type: 'text', required: false, title: 'HTML', Input: HtmlInput },
    description: 'Default: generated from the text.',
  },
  {
    ...{ key: 'link', type: 'url', required: false, title: 'Link' },
    description: `An address with {{token}}. Default: ${template.standard.link ?? 'none'}.`,
  },
  { key: 'preview', type: 'text', required: false, Input: createPreview(template) },
]

/** Returns the parts that are not empty: the others are the standard ones. */
const toParts = (values: FormValues): Record<string, string> =>
  Object.fromEntries(Object.entries(values).flatMap(([key, value]) => (value ? [[key, String(value)]] : [])))

/** The texts of one mail, with how it looks. */
export function TemplatePanel() {
  const { template: name } = route.useParams()
  const navigate = useNavigate()
  const { data, error } = useQuery(mailTemplatesQuery)
  const template = data?.find((each) => each.name === name)
  const test = useMutation({
    mutationFn: () => fetchData(api.POST('/api/mails/templates/{name}/test', { params: { path: { name } } })),
    onSuccess: () => showNotice('A test mail is on its way to your address.'),
    onError: showProblem,
  })
  return (
    <SidePanel
      title={toTemplateTitle(name)}
      onClose={() => navigate({ to: '/settings/mail' })}
      footer={
        template && (
          <>
            <SaveButton form={FORM_ID} />
            <Button variant="default" ml="auto" onClick={() => test.mutate()} loading={test.isPending}>
              Send a test mail
            </Button>
          </>
        )
      }
    >
      {error && <ProblemMessage error={error} />}
      {data && !template && <Text size="sm">There is no such mail.</Text>}
      {template && <TemplateForm key={name} template={template} />}
    </SidePanel>
  )
}

function TemplateForm({ template }: { template: MailTemplate }) {
  const { name, custom } = template
  const save = async (_changes: FormValues, values: FormValues) => {
    const own = toParts(values)
    await changeConfiguration('mail-templates', { [name]: Object.keys(own).length ? own : null })
  }
  const finish = async () => {
    await queryClient.invalidateQueries({ queryKey: mailTemplatesQuery.queryKey })
    showNotice('Saved.')
  }
  const fields = useMemo(() => toFields(template), [template])
  return (
    <FieldForm
      id={FORM_ID}
      fields={fields}
      before={custom}
      draftKey={`settings-mail-${name}`}
      save={save}
      onSaved={finish}
    />
  )
}
