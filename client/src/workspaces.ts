import type { ActiveWorkspace } from './session'
import { type Init, type Transport, toSegment } from './transport'

export type AtollWorkspace = {
  _id: string
  name: string
  logo: string | null
  labels: string[]
  /** Whether the caller is an admin of it. */
  isPrivilegedUser: boolean
  created: string
  updated: string
}
export type AtollMember = { user: string; roles: string[]; created: string; fullName: string; email?: string }
export type AtollInvite = { _id: string; email: string; name: string | null; roles: string[]; created: string }
export type WorkspaceDetails = AtollWorkspace & { members: AtollMember[]; invites: AtollInvite[] }
/** An invite as the invited user sees it. */
export type AtollInvitation = {
  _id: string
  workspace: { _id: string; name: string; logo: string | null }
  roles: string[]
  created: string
}
export type WorkspaceInput = { name: string; logo?: string | null; labels?: string[] }
/** A page of a list; `sort` is a field, with "-" for descending order. */
export type Page = { limit?: number; page?: number; sort?: string }

/** Workspaces, their members and invites. */
export function createWorkspaces({ get, post, put, remove }: Transport) {
  const path = '/api/workspaces'
  const pathOf = (id: string) => `${path}/${toSegment(id)}`
  const answerInvite = (workspace: string, kind: 'accept' | 'decline', init: Init) =>
    post<{ success: true }>('/api/invites', { workspace, kind }, init)
  return {
    /**
     * The workspaces that the caller is a member of.
     * @example
     * for (const workspace of await client.workspaces.list()) console.log(workspace.name)
     */
    list: (page: Page = {}, init: Init = {}) => get<AtollWorkspace[]>(path, page, init),
    /**
     * Creates a workspace, whose admin the caller is.
     * @example
     * const workspace = await client.workspaces.create({ name: 'Analytical Engines' })
     */
    create: (workspace: WorkspaceInput, init: Init = {}) => post<WorkspaceDetails>(path, workspace, init),
    /**
     * A workspace with its members and invites.
     * @example
     * const { members, invites } = await client.workspaces.get(workspace._id)
     */
    get: (id: string, init: Init = {}) => get<WorkspaceDetails>(pathOf(id), {}, init),
    /**
     * Changes a workspace; for its admins.
     * @example
     * await client.workspaces.change(workspace._id, { name: 'Difference Engines' })
     */
    change: (id: string, change: Partial<WorkspaceInput>, init: Init = {}) =>
      put<WorkspaceDetails>(pathOf(id), change, init),
    /**
     * Removes a workspace. Its entities stay: `entities` says how many.
     * @example
     * const { entities } = await client.workspaces.remove(workspace._id)
     */
    remove: (id: string, init: Init = {}) => remove<{ success: true; entities: number }>(pathOf(id), init),
    /**
     * The workspace that the caller works in, or null.
     * @example
     * const active = await client.workspaces.active()
     */
    active: async (init: Init = {}) =>
      (await get<{ workspace: ActiveWorkspace | null }>('/api/me', {}, init)).workspace,
    /**
     * Makes a workspace the one that the caller works in.
     * @example
     * await client.workspaces.activate(workspace._id)
     */
    activate: (id: string, init: Init = {}) =>
      post<AtollWorkspace & { roles: string[] }>(`${pathOf(id)}/activate`, undefined, init),

    /** Members of a workspace. */
    members: {
      /**
       * Who is in a workspace.
       * @example
       * const members = await client.workspaces.members.list(workspace._id)
       */
      list: (workspace: string, page: Page = {}, init: Init = {}) =>
        get<AtollMember[]>(`${pathOf(workspace)}/members`, page, init),
      /**
       * Adds a user; for admins of the workspace.
       * @example
       * await client.workspaces.members.add(workspace._id, { userId: friend._id, roles: ['member'] })
       */
      add: async (workspace: string, member: { userId: string; roles: string[] }, init: Init = {}) =>
        (await post<{ workspace: WorkspaceDetails }>(`${pathOf(workspace)}/members`, member, init)).workspace,
      /**
       * Changes the roles of a member; for admins of the workspace.
       * @example
       * await client.workspaces.members.add(workspace._id, { userId: friend._id, roles: ['member'] })
       * await client.workspaces.members.change(workspace._id, friend._id, ['admin'])
       */
      change: async (workspace: string, user: string, roles: string[], init: Init = {}) => {
        const memberPath = `${pathOf(workspace)}/members/${toSegment(user)}`
        const { updatedMember } = await put<{ updatedMember: { user: string; roles: string[] } }>(
          memberPath,
          { roles },
          init,
        )
        return updatedMember
      },
      /**
       * Removes a member; for admins of the workspace, and for oneself.
       * @example
       * await client.workspaces.members.add(workspace._id, { userId: friend._id, roles: ['member'] })
       * await client.workspaces.members.remove(workspace._id, friend._id)
       */
      remove: (workspace: string, user: string, init: Init = {}) =>
        remove<{ removedMemberId: string }>(`${pathOf(workspace)}/members/${toSegment(user)}`, init),
    },

    /** Invites to a workspace, and those that the caller has received. */
    invites: {
      /**
       * Invites somebody by mail; for admins of the workspace.
       * @example
       * const invite = await client.workspaces.invites.create(workspace._id, { email: 'ada@example.com', roles: ['member'] })
       */
      create: (workspace: string, invite: { email: string; name?: string; roles?: string[] }, init: Init = {}) =>
        post<AtollInvite>(`${pathOf(workspace)}/invites`, invite, init),
      /**
       * Takes an invite back; for admins of the workspace.
       * @example
       * const invite = await client.workspaces.invites.create(workspace._id, { email: 'ada@example.com' })
       * await client.workspaces.invites.remove(workspace._id, invite._id)
       */
      remove: (workspace: string, invite: string, init: Init = {}) =>
        remove(`${pathOf(workspace)}/invites/${toSegment(invite)}`, init),
      /**
       * The invites that the caller has received.
       * @example
       * for (const invite of await client.workspaces.invites.received()) console.log(invite.workspace.name)
       */
      received: (page: Page = {}, init: Init = {}) => get<AtollInvitation[]>('/api/invites', page, init),
      /**
       * Becomes a member of a workspace.
       * @example
       * for (const { workspace } of await client.workspaces.invites.received()) {
       *   await client.workspaces.invites.accept(workspace._id)
       * }
       */
      accept: (workspace: string, init: Init = {}) => answerInvite(workspace, 'accept', init),
      /**
       * Refuses an invite.
       * @example
       * for (const { workspace } of await client.workspaces.invites.received()) {
       *   await client.workspaces.invites.decline(workspace._id)
       * }
       */
      decline: (workspace: string, init: Init = {}) => answerInvite(workspace, 'decline', init),
    },
  }
}
