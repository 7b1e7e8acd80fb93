import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { installationQuery } from '../api/queries'
import { FieldForm, type FormField } from '../fields/field-form'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { changeWebsites } from './host-rows'

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
  const { data: installation } = useQuery(installationQuery)
  const claims = installation?.hostClaims
  const close = () => navigate({ to: '/settings/hosts' })
  const openHost = (address: string) => {
    const host = URL.parse(address)?.hostname
    if (host) void navigate({ to: '/settings/hosts/$host', params: { host }, replace: true })
  }
  return (
    <SidePanel title="Add a website" onClose={close} footer={<SaveButton form={FORM_ID} label="Add website" />}>
      <FieldForm
        id={FORM_ID}
        fields={fields}
        draftKey="settings-website"
        save={async (_changes, { websiteUrls: address }) => {
          await changeWebsites((websites) => [...new Set([...websites, String(address ?? '')])])
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
