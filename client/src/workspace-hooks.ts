import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Client, Kinds } from './index'
import type { QuerySettings } from './query-settings'

/** Hooks for workspaces, their members and invites. */
export function createWorkspaceHooks<B extends Kinds<B>>(client: Client<B>, scope: string) {
  const { members, invites, ...workspaces } = client.workspaces
  const workspacesKey = [scope, 'workspaces']

  /** A mutation after which workspaces, and invites to them, are loaded again. */
  function useWorkspaceMutation<Variables, Result>(run: (variables: Variables) => Promise<Result>) {
    const queryClient = useQueryClient()
    return useMutation({ mutationFn: run, onSuccess: () => queryClient.invalidateQueries({ queryKey: workspacesKey }) })
  }

  return {
    /**
     * The workspaces that the user is a member of.
     * @example
     * const { data: workspaces = [] } = useWorkspaces()
     */
    useWorkspaces: (settings: QuerySettings = {}) =>
      useQuery({ queryKey: workspacesKey, queryFn: ({ signal }) => workspaces.list({}, { signal }), ...settings }),

    /**
     * A workspace with its members and invites; while the id is undefined, nothing is loaded.
     * @example
     * const { data: me } = useMe()
     * const { data: workspace } = useWorkspace(me?.workspace?._id)
     * const names = workspace?.members.map(({ fullName }) => fullName)
     */
    useWorkspace: (id: string | undefined, { enabled = true, ...settings }: QuerySettings = {}) =>
      useQuery({
        queryKey: [...workspacesKey, id],
        queryFn: ({ signal }) => workspaces.get(id!, { signal }),
        enabled: enabled && id !== undefined,
        ...settings,
      }),

    /**
     * Creates workspaces, whose admin the user is.
     * @example
     * const create = useCreateWorkspace()
     * const add = async () => (await create.mutateAsync({ name: 'Analytical Engines' }))._id
     */
    useCreateWorkspace: () =>
      useWorkspaceMutation((workspace: Parameters<typeof workspaces.create>[0]) => workspaces.create(workspace)),

    /**
     * Gives a member of a workspace other roles; for its admins.
     * @example
     * const change = useChangeMember()
     * const promote = (workspace: string, user: string) => change.mutate({ workspace, user, roles: ['admin'] })
     */
    useChangeMember: () =>
      useWorkspaceMutation(({ workspace, user, roles }: { workspace: string; user: string; roles: string[] }) =>
        members.change(workspace, user, roles),
      ),

    /**
     * Removes a member of a workspace; for its admins, and for oneself.
     * @example
     * const remove = useRemoveMember()
     * const leave = (workspace: string, user: string) => remove.mutate({ workspace, user })
     */
    useRemoveMember: () =>
      useWorkspaceMutation(({ workspace, user }: { workspace: string; user: string }) =>
        members.remove(workspace, user),
      ),

    /**
     * Invites people to a workspace by mail; for its admins.
     * @example
     * const invite = useInvite()
     * const send = (workspace: string) => invite.mutate({ workspace, email: 'ada@example.com', roles: ['member'] })
     */
    useInvite: () =>
      useWorkspaceMutation(({ workspace, ...invite }: { workspace: string } & Parameters<typeof invites.create>[1]) =>
        invites.create(workspace, invite),
      ),

    /**
     * Takes invites back; for admins of the workspace.
     * @example
     * const remove = useRemoveInvite()
     * const withdraw = (workspace: string, invite: string) => remove.mutate({ workspace, invite })
     */
    useRemoveInvite: () =>
      useWorkspaceMutation(({ workspace, invite }: { workspace: string; invite: string }) =>
        invites.remove(workspace, invite),
      ),

    /**
     * The invites that the user has got. They need a verified e-mail address.
     * @example
     * const { data: invitations = [] } = useInvitations()
     */
    useInvitations: (settings: QuerySettings = {}) =>
      useQuery({
        queryKey: [...workspacesKey, 'invitations'],
        queryFn: ({ signal }) => invites.received({}, { signal }),
        ...settings,
      }),

    /**
     * Accepts or declines the invite to a workspace.
     * @example
     * const answer = useAnswerInvitation()
     * const join = (workspace: string) => answer.mutate({ workspace, answer: 'accept' })
     */
    useAnswerInvitation: () =>
      useWorkspaceMutation(({ workspace, answer }: { workspace: string; answer: 'accept' | 'decline' }) =>
        invites[answer](workspace),
      ),
  }
}
