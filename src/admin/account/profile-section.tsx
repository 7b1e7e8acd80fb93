import { Button } from '@mantine/core'
import { api, fetchData } from '../api/client'
import { sendWithProof } from '../api/proof'
import type { Me } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { refetchAccount } from './account-queries'

const FORM_ID = 'profile'

const fields: FormField[] = [
  { key: 'username', title: 'Username', type: 'string', required: true },
  { key: 'firstName', title: 'First name', type: 'string' },
  { key: 'lastName', title: 'Last name', type: 'string' },
  { key: 'name', title: 'Display name', type: 'string' },
  { key: 'phone', title: 'Phone', type: 'string' },
  { key: 'birthDate', title: 'Birth date', type: 'date' },
  { key: 'profileImage', title: 'Profile image', type: 'url', description: 'The address of a picture.' },
]

async function saveProfile(changes: FormValues) {
  await sendWithProof((proof) => fetchData(api.POST('/api/me', { body: { ...changes, ...proof } })))
  await refetchAccount()
  showNotice('Saved.')
}

/** Who the user is. */
export const ProfileSection = ({ me }: { me: Me }) => (
  <PanelSection title="Profile" order={2}>
    <FieldForm id={FORM_ID} fields={fields} before={me} draftKey="account" save={saveProfile} onSaved={() => {}} />
    <Button type="submit" form={FORM_ID} mt="md">
      Save profile
    </Button>
  </PanelSection>
)
