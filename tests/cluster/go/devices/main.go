// Command devices is a Kubernetes device plugin for tests: it offers made-up devices of one resource to the kubelet.
//
// The file named by -unhealthy decides which of them are sick: device numbers, separated by white space. It may be
// written at any time; a file that doesn't exist means that all are well.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	pollPeriod     = 200 * time.Millisecond // how soon a change of the file, or of the kubelet, is seen
	registerWithin = 5 * time.Second
	retryAfter     = 500 * time.Millisecond
)

// devices is the plugin's gRPC service.
type devices struct {
	plugin.UnimplementedDevicePluginServer
	count     int
	unhealthy string // path of the file
}

func (d devices) snapshot() []*plugin.Device {
	text, err := os.ReadFile(d.unhealthy)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Printf("reading %s: %v", d.unhealthy, err)
	}
	sick := strings.Fields(string(text))
	list := make([]*plugin.Device, 0, d.count)
	for i := range d.count {
		health := plugin.Healthy
		if slices.Contains(sick, strconv.Itoa(i)) {
			health = plugin.Unhealthy
		}
		list = append(list, &plugin.Device{ID: fmt.Sprintf("GPU-%d", i), Health: health})
	}
	return list
}

func (devices) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

// ListAndWatch sends the devices at once and then whenever their health changes.
func (d devices) ListAndWatch(_ *plugin.Empty, stream plugin.DevicePlugin_ListAndWatchServer) error {
	sent := ""
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for {
		list := d.snapshot()
		if now := fmt.Sprint(list); now != sent {
			if err := stream.Send(&plugin.ListAndWatchResponse{Devices: list}); err != nil {
				return err
			}
			sent = now
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

// Allocate tells the container which devices are its own, in the variable that NVIDIA's runtime reads.
func (devices) Allocate(_ context.Context, request *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	response := &plugin.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &plugin.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return response, nil
}

// serve offers the devices until the kubelet that it registered with starts anew. It never returns nil.
func serve(d devices, resource, dir string) error {
	socket := filepath.Join(dir, strings.ReplaceAll(resource, "/", "_")+".sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	plugin.RegisterDevicePluginServer(server, d)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer server.Stop()

	if err := register(resource, socket, dir); err != nil {
		return err
	}
	log.Printf("%d devices of %s are registered", d.count, resource)
	for {
		select {
		case err := <-failed:
			return err
		case <-time.After(pollPeriod):
		}
		// A kubelet that starts empties the directory, and wants everyone to register again.
		if _, err := os.Stat(socket); err != nil {
			return fmt.Errorf("the kubelet started anew: %w", err)
		}
	}
}

func register(resource, socket, dir string) error {
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(dir, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	ctx, cancel := context.WithTimeout(context.Background(), registerWithin)
	defer cancel()
	_, err = plugin.NewRegistrationClient(kubelet).Register(ctx, &plugin.RegisterRequest{
		Version: plugin.Version, Endpoint: filepath.Base(socket), ResourceName: resource})
	return err
}

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "name of the extended resource")
	count := flag.Int("count", 4, "number of devices")
	unhealthy := flag.String("unhealthy", "", "file with the numbers of the devices that are sick")
	dir := flag.String("dir", plugin.DevicePluginPath, "the kubelet's directory for device plugins")
	flag.Parse()
	if *count < 1 || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "devices: -count is %d and must be at least 1; arguments %q are not known\n", *count, flag.Args())
		os.Exit(2)
	}
	for {
		log.Print(serve(devices{count: *count, unhealthy: *unhealthy}, *resource, *dir))
		time.Sleep(retryAfter)
	}
}
