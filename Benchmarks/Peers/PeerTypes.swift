public import BenchmarkCore

/// Every peer, in the order of the report: ours, what a user would pick instead, what a user would write where no
/// library exists, ours in other forms, and the physical limits.
/// Then the controls `wrong`, `hang`, `stall` and `absent`, which fail on purpose and appear in no report.
///
/// A peer whose library was missing at build time is in the list, and reports that: see ``Peer/missing``.
public let peerTypes: [any Peer.Type] = [
    OursPool.self, DispatchPool.self, OperationQueuePool.self, TaskGroupPeer.self, NIOPool.self,
    PthreadPoolPeer.self, TBBPool.self, ClosuresPeer.self, UndoManagerPeer.self, SnapshotPeer.self,
    OldValuesPeer.self, MutexPeer.self, FlagPeer.self, ActorPeer.self, OursBarePool.self,
    OursPreferredPool.self, OursRecordedPool.self, SerialPeer.self, FloorPeer.self, WrongPeer.self,
    HangingPeer.self, StallingPeer.self, AbsentPeer.self,
]
