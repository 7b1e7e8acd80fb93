import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import { appConfigurationQuery, type Branding } from '../branding/tenant-brand'
import { FieldForm, type FormField } from '../fields/field-form'
import { TimeZoneInput } from '../fields/time-zone-input'
import { showNotice } from '../ui/notices'
import { AccentInput } from './accent-input'
import { FormScreen } from './form-screen'
import { LogoInput } from './logo-input'

const FORM_ID = 'branding'

const fields: FormField[] = [
  {
    key: 'name',
    type: 'string',
    required: false,
    title: 'Name',
    max: 60,
    description: 'Name used in emails and on pages. Defaults to the host.',
  },
  { key: 'logo', type: 'url', required: false, title: 'Logo', Input: LogoInput },
  { key: 'accentColor', type: 'string', required: false, title: 'Accent colour', Input: AccentInput },
  {
    ...{ key: 'timezone', type: 'string', required: false, title: 'Time zone', Input: TimeZoneInput },
    description: 'For charts, sums by day, imports and mails. Default: UTC.',
  },
] satisfies (FormField & { key: keyof Branding | 'timezone' })[]

/** The name, the logo and the colour of this page, and the time zone of the tenant. */
export function General() {
  const { data, error, isPlaceholderData } = useQuery(appConfigurationQuery())
  const save = (changes: Branding) =>
    fetchData(api.PUT('/api/configurations/app-configuration', { body: changes as Record<string, unknown> }))
  const finish = async () => {
    await queryClient.invalidateQueries({ queryKey: ['configurations'] })
    showNotice('Saved.')
  }
  return (
    <FormScreen
      title="General"
      request={{ method: 'PUT', path: '/api/configurations/app-configuration', body: { name: 'Acme' } }}
      source="Kept in the app-configuration, which everybody may read: the sign-in shows it, and your apps can too."
      error={error}
      form={FORM_ID}
    >
      {data && !isPlaceholderData && (
        <FieldForm
          id={FORM_ID}
          fields={fields}
          before={data.metadata}
          draftKey="settings-general"
          save={save}
          onSaved={finish}
        />
      )}
    </FormScreen>
  )
}
